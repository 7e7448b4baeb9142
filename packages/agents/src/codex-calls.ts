// The calls of Codex that reach a unit: what one is, read from a message, and how they get into the audit log, a bounded number
// of rows however many there are. The log keeps a command as that of exec is kept; what a command reads, prints or is given by its
// environment is not told.

import type { Contract } from '../../sdk/src/index.ts'

type Told = Contract.UnitCalls['calls'][number]
export type CodexCall = Pick<Told, 'method' | 'cmd' | 'path' | 'session'>

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

/** @param text A message, or its beginning. Null if it is no call. */
export function callIn(text: string): CodexCall | null {
  const { method, params } = objectIn(text)
  if (typeof method !== 'string' || !NAME.test(method)) {
    const known = METHOD.exec(text)?.[1]
    return known !== undefined && NAME.test(known) ? { method: known } : null
  }
  const { argv, path, metadata } = record(params)
  const session = record(metadata)['threadId']
  const cmd = commandOf(argv)
  const told: CodexCall = { method }
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

/** How often a report is written: soon where it is full, else after a while. */
const EACH_MS = { full: 1000, else: 10_000 }
/** Of a report: calls as they were, and besides how often each other method was called. */
const MAX_CALLS = 20
const MAX_METHODS = 19

export type CallReport = {
  add: (call: CodexCall) => void
  /** Resolves once the last report is written, or was tried. */
  end: () => Promise<void>
}

/** @param say Is told once, until it is over, that reports cannot be written. Their calls are in the next one. */
export function createCallReport(
  write: (calls: Told[]) => Promise<void>,
  say: (error: unknown) => void,
  each: typeof EACH_MS = EACH_MS,
): CallReport {
  let calls = new Map<string, Told>()
  let writtenAt = performance.now()
  let writing: Promise<void> | null = null
  let isAway = false

  const add = (call: CodexCall, count = 1) => {
    const key = JSON.stringify(call)
    const methods = [...calls.values()].filter(({ cmd, path }) => !cmd && !path).length
    const hasDetail = call.cmd !== undefined || call.path !== undefined
    const isRoom = hasDetail ? calls.size - methods < MAX_CALLS : methods < MAX_METHODS
    const known = calls.get(key)
    if (known) known.count = (known.count ?? 1) + count
    else if (isRoom) calls.set(key, { ...call, count })
    else if (hasDetail) add({ method: call.method }, count)
    else if (call.method !== 'others')
      calls.set('others', { method: 'others', count: (calls.get('others')?.count ?? 0) + count })
  }
  const flush = async () => {
    if (calls.size === 0) return
    const told = [...calls.values()]
    calls = new Map()
    writtenAt = performance.now()
    try {
      await write(told)
      isAway = false
    } catch (error) {
      if (!isAway) say(error)
      isAway = true
      for (const { count = 1, ...call } of told) add(call, count)
    }
  }
  const look = () => {
    const isDue = calls.size >= MAX_CALLS || performance.now() - writtenAt >= each.else
    if (writing === null && isDue) writing = flush().finally(() => (writing = null))
  }
  const looking = setInterval(look, each.full)
  return {
    add,
    end: async () => {
      clearInterval(looking)
      await writing
      await flush()
    },
  }
}
