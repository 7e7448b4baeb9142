// What the forwarder needs of a vendor whose work comes through a relay, which a program of the vendor's own holds outside of the
// unit: one file a vendor implements it (codex.ts). Nobody calls us, so that there is no webhook to receive.

import type { Contract } from '../../sdk/src/index.ts'

/** A call that reaches a unit, as the audit log may keep it. */
export type RelayCall = Pick<Contract.UnitCalls['calls'][number], 'method' | 'cmd' | 'path' | 'session'>

export type Relay = {
  /** A word of lower-case letters, for names, labels and log lines. */
  vendor: string
  /** Of the unit that serves the vendor's protocol, and what it reaches unless somebody says otherwise. */
  recipe: string
  egress: string
  port: number
  /** The vendor's program that registers the environment and holds its relay, and how people get it. */
  program: string
  install: string
  /** What it is called with. Its first line of input is the environment's key; `url`: the unit, once there is work. */
  argsOf: (asked: { environment: string; remote: string; url: string }) => string[]
  /** What a message to the unit calls, read from its text or the beginning of it; null if it is no call. */
  callIn: (text: string) => RelayCall | null
}
