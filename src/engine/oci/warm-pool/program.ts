// The first process of a machine made ahead: it reads from its stdin what to become, and becomes it. A program of its own, of
// 170 bytes, because no shell can do that exactly: the next program must get its arguments, its environment and an empty
// stdin as it would from the runtime, without anything of a shell's in between.
//
// The message is laid out as the program's memory will be, with the addresses of argv and envp in place: it need not be
// parsed. It comes through a FIFO whose only writer is the engine.
// - If the engine ends before it has sent a message, so does the program.
// - The descriptor of the FIFO is closed by execve, and by nothing else: that it has no reader any more shows that
//   the next program runs.
// - If execve fails, the program reads once more, and waits to be killed.

import { executable, MEMORY_AT } from '../kernel/executable.ts'

/** `readelf` and `objdump -D -b binary -m i386:x86-64` show the same. */
const code = [
  'bb00006000', //             mov ebx, MEMORY
  '4531e4', //                 xor r12d, r12d           bytes read so far
  // more:
  '31c0 31ff', //              read(0,
  '4a8d3423', //               lea rsi, [rbx+r12]         MEMORY + r12,
  'ba00001000', //             mov edx, MEMORY_BYTES
  '4429e2', //                 sub edx, r12d              MEMORY_BYTES - r12)
  '0f05', //                   syscall
  '4885c0 7e78', //            if (rax <= 0) goto gone
  '4901c4', //                 add r12, rax
  '4983fc20 72e0', //          if (r12 < 32) goto more
  '4c3b23 72db', //            if (r12 < length) goto more
  'b848000000 31ff', //        fcntl(0,
  'be06040000', //               F_DUPFD_CLOEXEC,
  'ba03000000 0f05', //          3)
  '4189c5', //                 mov r13d, eax
  'b802000000', //             open(
  '488d3d51000000', //           "/dev/null",
  'be02000000 0f05', //          O_RDWR)
  '89c5 89c7', //              mov ebp, eax
  'b821000000 31f6 0f05', //   dup2(eax, 0)
  '89ef b803000000 0f05', //   close(ebp)
  '488b7b08', //               execve(path,
  '488b7310', //                 argv,
  '488b5318', //                 envp)
  'b83b000000 0f05',
  '31c0 4489ef', //            read(r13d,
  '4889de ba08000000 0f05', // MEMORY, 8)
  // sleep:
  'b822000000 0f05 ebf7', //   pause(), goto sleep
  // gone:
  'b8e7000000 31ff 0f05', //   exit_group(0)
].join('')

const NULL_DEVICE = '/dev/null\0'
const POINTER_BYTES = 8
/** The capacity of a pipe, so that no writer waits for a machine that is still frozen. */
const MESSAGE_BYTES = 60_000

export function waitingProgram(): Buffer {
  return executable(code, NULL_DEVICE)
}

export type Become = { path: string; args: string[]; env: string[] }

/** Returns null if it cannot be told at once. */
export function messageFor({ path, args, env }: Become): Buffer | null {
  const texts = [path, ...args, ...env]
  if (texts.some((text) => text.includes('\0'))) return null
  // Length, path, argv and envp; then both arrays, each with a null at its end; then the texts.
  const pointers = 4 + args.length + 1 + env.length + 1
  const strings = texts.map((text) => Buffer.from(`${text}\0`))
  const addresses: number[] = []
  let end = pointers * POINTER_BYTES
  for (const text of strings) {
    addresses.push(MEMORY_AT + end)
    end += text.length
  }
  if (end > MESSAGE_BYTES) return null
  const [pathAt = 0, ...others] = addresses
  const argvAt = MEMORY_AT + 4 * POINTER_BYTES
  const envpAt = argvAt + (args.length + 1) * POINTER_BYTES
  const table = [end, pathAt, argvAt, envpAt, ...others.slice(0, args.length), 0]
  const words = Buffer.alloc(pointers * POINTER_BYTES)
  for (const [index, word] of [...table, ...others.slice(args.length), 0].entries())
    words.writeBigUInt64LE(BigInt(word), index * POINTER_BYTES)
  return Buffer.concat([words, ...strings])
}
