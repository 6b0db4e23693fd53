// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The one table of what can happen to a frame besides being delivered. The enum, the name used in
// results.json, packet comments and metrics, and the help text all come from it.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weft {

// clang-format off
//      name                 help
#define WEFT_DROP_REASONS(X)                                                                                       \
  X(runt,                "frame shorter than an Ethernet header")                                                  \
  X(mtu_exceeded,        "frame longer than the MTU")                                                              \
  X(malformed,           "header lengths contradict the frame's length")                                           \
  X(ttl_expired,         "routed frame whose TTL or hop limit ran out")                                            \
  X(no_route,            "routed frame without a matching prefix, or without a next hop")                          \
  X(not_routable,        "frame that is not addressed to the router, or not IP, in route mode")                    \
  X(voq_limit,           "lossy frame over the dynamic limit of its VOQ at the ingress leaf")                      \
  X(class_limit,         "lossy frame over the limit of its class in a shared buffer")                             \
  X(buffer_full,         "no room in the packet buffer")                                                           \
  X(headroom_exceeded,   "lossless frame beyond its port's headroom: PFC came too late or was ignored")            \
  X(voqs_exhausted,      "no VOQ left in the pool of the ingress leaf")                                            \
  X(deep_bandwidth,      "external memory could not be written fast enough")                                       \
  X(not_ect,             "frame chosen for an ECN mark that it cannot carry")                                      \
  X(unreachable,         "no live fabric link reaches the destination leaf")                                       \
  X(cell_lost,           "a cell of the frame was lost on a fabric link, and given up after the reorder timeout")  \
  X(link_down,           "frame lost on a link that was down")                                                     \
  X(link_error,          "frame corrupted on a link")                                                              \
  X(watchdog,            "frame discarded by the PFC watchdog on a port that stayed paused")                        \
  X(host_queue,          "live host sends faster than its emulated link, and the queue in front of it is full")     \
  X(host_down,           "the live port that it was to leave by has no link")                                       \
  X(host_mtu,            "longer than the live port that it was to leave by can send")

#define WEFT_FILTER_REASONS(X)                                                       \
  X(link_local,          "802.1D link-local address: never forwarded by a bridge")   \
  X(same_port,           "destination is behind the port that the frame came from")  \
  X(mac_control,         "PAUSE or PFC: consumed by the port that received it")      \
  X(unmapped_port,       "static forwarding says nothing about the ingress port")

/// What a live port lost: failures of the emulator and its machine, never network drops.
#define WEFT_PORT_LOSSES(X)                                                                   \
  X(rx_missed,     "arrived while the device's receive ring was full")                        \
  X(rx_no_buffer,  "arrived when the device found no memory for it")                          \
  X(rx_errors,     "arrived, and was refused by the device")                                  \
  X(rx_socket,     "arrived while the packet socket's ring was full")                         \
  X(rx_oversize,   "arrived longer than the device's MTU: its peer left segmentation to it")  \
  X(tx_refused,    "delivered, and not taken by the device after all retries")                \
  X(tx_errors,     "delivered, taken by the device, and not sent")

// clang-format on

#define WEFT_ENUM_ENTRY(name, help) name,
#define WEFT_NAME_ENTRY(name, help) std::string_view{#name},
#define WEFT_HELP_ENTRY(name, help) std::string_view{help},

enum class DropReason : std::uint8_t { WEFT_DROP_REASONS(WEFT_ENUM_ENTRY) };
inline constexpr std::array drop_reason_names{WEFT_DROP_REASONS(WEFT_NAME_ENTRY)};
inline constexpr std::array drop_reason_help{WEFT_DROP_REASONS(WEFT_HELP_ENTRY)};
inline constexpr std::size_t drop_reasons = drop_reason_names.size();

enum class FilterReason : std::uint8_t { WEFT_FILTER_REASONS(WEFT_ENUM_ENTRY) };
inline constexpr std::array filter_reason_names{WEFT_FILTER_REASONS(WEFT_NAME_ENTRY)};
inline constexpr std::array filter_reason_help{WEFT_FILTER_REASONS(WEFT_HELP_ENTRY)};
inline constexpr std::size_t filter_reasons = filter_reason_names.size();

enum class PortLoss : std::uint8_t { WEFT_PORT_LOSSES(WEFT_ENUM_ENTRY) };
inline constexpr std::array port_loss_names{WEFT_PORT_LOSSES(WEFT_NAME_ENTRY)};
inline constexpr std::array port_loss_help{WEFT_PORT_LOSSES(WEFT_HELP_ENTRY)};
inline constexpr std::size_t port_losses = port_loss_names.size();

#undef WEFT_ENUM_ENTRY
#undef WEFT_NAME_ENTRY
#undef WEFT_HELP_ENTRY

constexpr std::string_view name_of(DropReason r) { return drop_reason_names[static_cast<std::size_t>(r)]; }
constexpr std::string_view name_of(FilterReason r) { return filter_reason_names[static_cast<std::size_t>(r)]; }

/// The books of one node, and by addition those of a run:
/// offered + replicated = delivered + filtered + dropped + in flight.
struct FrameBooks {
  std::uint64_t offered = 0, offered_bytes = 0;
  std::uint64_t replicated = 0;  // copies that floods added to the original
  std::uint64_t delivered = 0, delivered_bytes = 0;
  std::array<std::uint64_t, filter_reasons> filtered{};
  std::array<std::uint64_t, drop_reasons> dropped{};
  std::uint64_t no_frame_memory = 0;  // the emulator's own failure, never a network drop

  void drop(DropReason reason) { ++dropped[static_cast<std::size_t>(reason)]; }
  void filter(FilterReason reason) { ++filtered[static_cast<std::size_t>(reason)]; }
  [[nodiscard]] std::uint64_t filtered_total() const;
  [[nodiscard]] std::uint64_t dropped_total() const;
  FrameBooks& operator+=(const FrameBooks& other);
};

}  // namespace weft
