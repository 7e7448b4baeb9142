// The program that forks what a machine's runtime would start (fork.c).

import { HELPER_DIR } from '../storage/mount-points.ts'

/** Its name beside the helper. */
export const FORK = 'fork'

/** What asks it for a process, beside five descriptors; the process writes it into the list of tasks: itself. */
export const FORK_REQUEST = Buffer.from('0')

/** The arguments that wait for requests to execute a command. */
export function forkingCommand(argv: string[]): string[] {
  return [`${HELPER_DIR}/${FORK}`, ...argv]
}
