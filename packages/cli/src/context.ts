// Which service a command calls: by flags, else the environment, else the profile, else the operator's file of this
// machine.

import { Berth, BerthError, type Unit } from '@berth/sdk'
import { type Args, closest } from './args.ts'
import { type Profile, readConfig } from './config.ts'
import { exitCodes, Failure } from './failure.ts'

export type Context = {
  args: Args
  isJson: boolean
  /** Aborts at Ctrl-C. */
  signal: AbortSignal
  /** Of the service: made when it is first asked for, so that help and the like need none. */
  berth: () => Berth
}

/** Answers the code to end with; nothing is 0. */
export type Handler = (context: Context) => Promise<number | void>

export const version = '0.1.0'

export function contextOf(args: Args, signal: AbortSignal): Context {
  let berth: Berth | null = null
  return { args, isJson: args.flag('json'), signal, berth: () => (berth ??= connect(args)) }
}

/** `userAgent`: what the audit log says of its calls. */
export function connect(args: Args, userAgent = `berth-cli/${version}`): Berth {
  const { BERTH_API_KEY, BERTH_URL } = process.env
  const [url, name] = [args.text('url') ?? BERTH_URL, args.text('profile') ?? process.env.BERTH_PROFILE]
  if (BERTH_API_KEY && !args.text('profile')) return new Berth({ url, userAgent })
  const [found, profile] = profileOf(url, name)
  if (!profile) return new Berth({ url, userAgent })
  const apiKey = profile.key ?? (async () => await (await import('./oauth.ts')).accessToken(found))
  return new Berth({ url: profile.url, apiKey, userAgent })
}

export const noProfile = (name: string, hint = 'berth profiles'): Failure =>
  new Failure(`There is no profile "${name}".`, { hint, code: 'not_found' })

/** The one that is named, the one of the URL, or the current one. Null: none was ever made. */
function profileOf(url: string | undefined, name: string | undefined): [string, Profile | null] {
  const { current, profiles } = readConfig()
  if (name !== undefined) {
    const profile = profiles[name]
    if (!profile) throw noProfile(name)
    return [name, profile]
  }
  if (url === undefined) return [current, profiles[current] ?? null]
  const wanted = url.replace(/\/+$/, '')
  const [found, profile] = Object.entries(profiles).find(([, each]) => each.url === wanted) ?? ['', null]
  return [found, profile]
}

/** What the calls are signed with: a browser's sign-in, a key, or the operator's file; and the profile, if one is used. */
export function profileUsed(args: Args): {
  by: 'browser' | 'key' | 'BERTH_API_KEY' | 'credentials.json'
  profile: string | null
} {
  if (process.env.BERTH_API_KEY && !args.text('profile')) return { by: 'BERTH_API_KEY', profile: null }
  const [name, profile] = profileOf(
    args.text('url') ?? process.env.BERTH_URL,
    args.text('profile') ?? process.env.BERTH_PROFILE,
  )
  if (!profile) return { by: 'credentials.json', profile: null }
  return { by: profile.oauth ? 'browser' : 'key', profile: name }
}

/** By id, by name where it is the only one, or as STACK/NAME. Throws what to type instead. */
export async function unitOf(context: Context, word: string): Promise<Unit> {
  const { signal } = context
  const { units } = context.berth()
  if (/^unit_[0-9a-z]+$/i.test(word)) return await units.get(word, { signal })
  const [name = '', stack] = word.split('/').toReversed()
  const found = await units.find(name, { stack, signal }).catch((error: unknown) => {
    if (!(error instanceof BerthError)) throw error
    if (error.code === 'not_found') return null
    // Several are called so: any other name that is wrong has a stack.
    if (error.code === 'validation' && stack === undefined)
      throw new Failure(error.message, {
        hint: `berth ls, then STACK/${name} or the id`,
        exitCode: exitCodes.usage,
        code: 'validation',
      })
    throw error
  })
  if (found) return found
  // Only now: it costs a call.
  const names = await units
    .list({ limit: 200, signal })
    .page()
    .then(({ items }) => items.map((unit) => unit.name))
    .catch(() => [])
  const near = closest(name, names)
  const meant = near === null || near === name ? '' : ` Did you mean "${near}"?`
  throw new Failure(`There is no unit "${word}".${meant}`, { hint: 'berth ls', code: 'not_found' })
}

export const stackNameOf = (unit: Unit): string => unit.info.internalHost.split('.')[1] ?? unit.info.stackId
