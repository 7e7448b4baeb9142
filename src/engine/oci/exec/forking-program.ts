// The program of a forker (forker.ts): for each byte that it reads from the socket that is its fourth descriptor, it has
// one more process beside it, which executes what the program's own arguments say. 268 bytes of machine code, because no
// shell can do that: the new process is a child not of the program but of its parent (CLONE_PARENT), as if the runtime
// had started it, so that the engine sees it end.
//
// Beside the byte come five descriptors: of the list of the tasks in the group that the process is to be in, and what
// its first four descriptors are to be. It writes itself into the list, which saves the kernel the wait that another
// process's move costs, leads a session, and answers with a byte, before it executes anything. If there is no process,
// the program answers.
//
// Nothing of the unit can look into the program, or read its descriptors: it is not "dumpable", and its unit has no
// power over such processes but to end them. What it executes is dumpable as ever. It ends with its engine.

import { executable } from '../kernel/executable.ts'

/** Beside the helper, which each machine has. */
export const FORKING_PROGRAM = 'fork'

/** `readelf` and `objdump -D -b binary -m i386:x86-64` show the same. */
const code = [
  '4c8b2424', //               mov r12, [rsp]            argc
  '4e8d6ce410', //             lea r13, [rsp+r12*8+16]   the environment
  '4c8d642410', //             lea r12, [rsp+16]         the arguments from the second on
  'bb00006000', //             mov ebx, MEMORY           struct msghdr
  'bf04000000 31f6', //        prctl(PR_SET_DUMPABLE, 0)
  'b89d000000 0f05',
  '488d4338 48894310', //      msg_iov = MEMORY + 56
  'c6431801', //               msg_iovlen = 1
  '488d4348 48894338', //      iov_base = MEMORY + 72
  'c6434001', //               iov_len = 1
  '488d4350 48894320', //      msg_control = MEMORY + 80
  // more:
  'c6432828', //               msg_controllen = 40       five descriptors
  'bf03000000 4889de', //      recvmsg(3, MEMORY, 0)
  '31d2 b82f000000 0f05',
  '83f801 0f85a1000000', //    if (eax != 1) goto gone
  '807b2828 0f8597000000', //  if (msg_controllen != 40) goto gone
  'bf11800000', //             clone(CLONE_PARENT | SIGCHLD,
  '31f6 31d2', //                0, 0,
  '4531d2 4531c0', //            0, 0)
  'b838000000 0f05',
  '4189c6', //                 mov r14d, eax
  '85c0 781c', //              if (eax < 0) goto tell
  '754a', //                   if (eax > 0) goto close
  '8b7b60 488d7348', //        write(descriptor[0], MEMORY + 72, 1)
  'ba01000000 b801000000 0f05',
  'b870000000 0f05', //        setsid()
  // tell:
  'bf03000000 488d7348', //    write(3, MEMORY + 72, 1)
  'ba01000000 b801000000 0f05',
  '4585f6 7516', //            if (r14d != 0) goto close
  '31ed', //                   xor ebp, ebp
  // take:
  '8b7cab64 89ee', //          dup2(descriptor[ebp + 1], ebp)
  'b821000000 0f05',
  'ffc5 83fd04 75ec', //       if (++ebp != 4) goto take
  // close:
  '31ed', //                   xor ebp, ebp
  // shut:
  '8b7cab60', //               close(descriptor[ebp])
  'b803000000 0f05',
  'ffc5 83fd05 75ee', //       if (++ebp != 5) goto shut
  '4585f6 0f8552ffffff', //    if (r14d != 0) goto more
  '498b3c24 4c89e6 4c89ea', // execve(r12[0], r12, r13)
  'b83b000000 0f05',
  // gone:
  'bf01000000', //             exit_group(1)
  'b8e7000000 0f05',
].join('')

/** What the new process writes into the list of tasks: itself. */
export const REQUEST = Buffer.from('0')

export function forkingProgram(): Buffer {
  return executable(code)
}
