// SPDX-License-Identifier: MIT
//
// Other processes that share memory with this one. Each shows the others a page with the progress of its work and
// with who has opened its memory, and holds a lock on the page's file: the system releases it when the process ends,
// however it ends.
#pragma once

#include "hip/hip_types.h"

namespace ckemu {

/// A file that a process holds open: its number there, and the inode by which it is recognised.
struct FileAddress {
  i32 process = 0, number = -1;
  u64 inode = 0;
};
/// A file without a name, of so many zeros; -1 if there can be none.
int create_file(const char* name, u64 bytes);
/// Its first bytes in memory, which all processes that map them share; null if there is no room.
void* map_shared(int file, u64 bytes);
u64 inode_of(int file);
/// The address of a file of this process.
FileAddress address_of_file(int file);
/// A descriptor of its own for a file of another process; -1 if that process has ended or has closed it.
int open_file(const FileAddress& address);

/// The page of this process.
FileAddress own_page();
/// From now on the process with this page is a peer, and this process is one of its peers.
hipError_t add_peer(const FileAddress& page);
/// From now on processes that are not known may have memory of this one.
void add_unknown_peers();
/// Whether memory is shared with any process.
bool have_peers();

/// Waiting for what another process may do.
class PeerWatch {
 public:
  /// Whether it may still come. If not, because a peer has died, all have ended, or none has made progress for
  /// CKLANG_PEER_TIMEOUT, adds the reason to `why`.
  bool may_help(Message& why);

 private:
  u64 progress_ = 0, since_ = 0, asked_ = 0;
};

/// Gives processor time to others.
void pause_for_peers();

}  // namespace ckemu
