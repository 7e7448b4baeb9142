// Constants and structures of the kernel's socket calls for which Node has no function.

import koffi from 'koffi'

export const AF_UNIX = 1
export const SOCK_STREAM = 1
export const SOCK_NONBLOCK = 0o4000
export const SOCK_CLOEXEC = 0o2000000
export const SOL_SOCKET = 1
export const SCM_RIGHTS = 1

const iovec = koffi.struct('BerthIovec', { base: 'void *', length: 'size_t' })

/** `struct msghdr`. */
export const messageType = koffi.struct('BerthMessage', {
  name: 'void *',
  nameLength: 'uint32_t',
  pieces: koffi.pointer(iovec),
  pieceCount: 'size_t',
  control: 'void *',
  controlLength: 'size_t',
  flags: 'int',
})
