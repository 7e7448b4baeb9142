// The program that stands between commands and the reader of their output (relay.c says what it does and why). It lies
// beside the helper of every machine, and runs on the host where a command has left processes behind (left-behind.ts).

import { HELPER_DIR } from '../storage/mount-points.ts'

/** Its name beside the helper. */
export const RELAY = 'relay'

const inMachine = `${HELPER_DIR}/${RELAY}`

type Command = { args: string[]; env: string[] }

/** Has a command's output go through the relay. The command has the marker in its environment, and the relay has not. */
export function throughRelay<T extends Command>({ args, env, ...rest }: T, marker: string): T {
  return { ...rest, args: [inMachine, 'lead', marker, ...args], env: [...env, unset(marker)] } as T
}

/** The arguments of a command that stays in the session, and whose environment has the marker `unset`. */
export function relayed(args: string[], marker: string): string[] {
  return [inMachine, 'run', marker, ...args]
}

/** The variable, which the relay gives its value in the command's environment. */
export function unset(marker: string): string {
  return `${marker.split('=')[0]}=`
}
