// The program that starts a command in a directory of its machine, and tells how it ends (start.c).

import { HELPER_DIR } from '../storage/mount-points.ts'

/** Its name beside the helper. */
export const START = 'start'

const inMachine = `${HELPER_DIR}/${START}`

/** The arguments that become a command in a directory; an empty one: where they are started. */
export function commandIn(cwd: string, argv: string[]): string[] {
  return [inMachine, 'in', cwd, ...argv]
}

/** The same, after a line with its pid among its output. */
export function commandTellingPid(cwd: string, argv: string[]): string[] {
  return [inMachine, 'pid', cwd, ...argv]
}

/**
 * The arguments that run a command in a directory, and tell on descriptor 3 their pid and how it ended (`readReport`).
 * `variable`: what the command has in place of the one of that name; empty for nothing.
 */
export function toldCommandIn(cwd: string, argv: string[], variable: string): string[] {
  return [inMachine, 'told', variable, cwd, ...argv]
}
