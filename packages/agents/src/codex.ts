// Codex behind a relay: OpenAI's Agents API, or another Codex. What its forwarder is called with, and what one of its calls is, read
// from a message. The audit log keeps a command as that of exec is kept; what a command reads, prints or is given by its environment
// is not told.

import type { Relay, RelayCall } from './relay.ts'

export const codex: Relay = {
  vendor: 'codex',
  recipe: 'codex-executor',
  // It is installed from there.
  egress: 'preset:npm',
  port: 4512,
  program: 'codex',
  install: 'npm install --global @openai/codex',
  argsOf: ({ environment, remote, url }) => [
    'exec-server',
    'forward',
    '--remote',
    remote,
    '--environment-id',
    environment,
    '--connect',
    url,
    '--registration-bearer-stdin',
    '--exit-on-stdin-close',
  ],
  callIn,
}

/** As Codex writes them: the method before what it is called with. */
const METHOD =
  /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?(?:"id"\s*:\s*(?:\d+|"[^"]{0,64}")\s*,\s*)?"method"\s*:\s*"([A-Za-z/_]{1,64})"/
const NAME = /^[A-Za-z][A-Za-z/_]{0,63}$/
/** Codex looks whether files are there all the time: those are counted. */
const WITH_PATH = /^fs\/(?:read|write|remove|rename|copy|create)(?!Directory$)/
/** Of a command: more than the log reads of it, so that it knows that it was cut. */
const MAX_COMMAND = 4000
const MAX_ITEMS = 64
const MAX_PATH = 1000

/** Of a message, or its beginning. */
function callIn(text: string): RelayCall | null {
  const { method, params } = objectIn(text)
  if (typeof method !== 'string' || !NAME.test(method)) {
    const known = METHOD.exec(text)?.[1]
    return known !== undefined && NAME.test(known) ? { method: known } : null
  }
  const { argv, path, metadata } = record(params)
  const session = record(metadata)['threadId']
  const cmd = commandOf(argv)
  const told: RelayCall = { method }
  if (cmd.length > 0) told.cmd = cmd
  if (WITH_PATH.test(method) && typeof path === 'string' && path !== '') told.path = pathOf(path)
  if (typeof session === 'string' && /^[!-~]{1,128}$/.test(session)) told.session = session
  return told
}

function objectIn(text: string): Record<string, unknown> {
  try {
    return record(JSON.parse(text))
  } catch {
    return {}
  }
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

function commandOf(argv: unknown): string[] {
  const kept: string[] = []
  if (!Array.isArray(argv)) return kept
  for (let [at, room] = [0, MAX_COMMAND]; at < Math.min(argv.length, MAX_ITEMS) && room > 0; at++) {
    const word = plain(String(argv[at]).slice(0, room))
    kept.push(word)
    room -= word.length
  }
  return kept
}

/** A URI, or a path. */
function pathOf(given: string): string {
  const path = given.replace(/^file:\/\//, '').slice(0, MAX_PATH)
  try {
    return plain(decodeURIComponent(path))
  } catch {
    return plain(path)
  }
}

/** What the log may keep. */
function plain(text: string): string {
  return text.toWellFormed().replaceAll('\0', '�')
}
