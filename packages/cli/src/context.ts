// Which service a command calls: by flags, else the environment, else the profile, else the operator's file of this
// machine.

import { Berth, BerthError, type Unit } from '@berth/sdk'
import type { Args } from './args.ts'
import { type Profile, readConfig } from './config.ts'
import { Failure } from './failure.ts'

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

function connect(args: Args): Berth {
  const userAgent = `berth-cli/${version}`
  const { BERTH_API_KEY, BERTH_URL } = process.env
  const [url, name] = [args.text('url') ?? BERTH_URL, args.text('profile') ?? process.env.BERTH_PROFILE]
  if (BERTH_API_KEY && !args.text('profile')) return new Berth({ url, userAgent })
  const [found, profile] = profileOf(url, name)
  if (!profile) return new Berth({ url, userAgent })
  const apiKey = profile.key ?? (async () => await (await import('./oauth.ts')).accessToken(found))
  return new Berth({ url: profile.url, apiKey, userAgent })
}

/** The one that is named, the one of the URL, or the current one. Null: none was ever made. */
function profileOf(url: string | undefined, name: string | undefined): [string, Profile | null] {
  const { current, profiles } = readConfig()
  if (name !== undefined) {
    const profile = profiles[name]
    if (!profile)
      throw new Failure(`There is no profile "${name}".`, { hint: 'berth profiles', code: 'not_found' })
    return [name, profile]
  }
  if (url === undefined) return [current, profiles[current] ?? null]
  const wanted = url.replace(/\/+$/, '')
  const [found, profile] = Object.entries(profiles).find(([, each]) => each.url === wanted) ?? ['', null]
  return [found, profile]
}

/** By id, by name where it is the only one, or as STACK/NAME. Throws what to type instead. */
export async function unitOf(context: Context, word: string): Promise<Unit> {
  const { signal } = context
  const { units } = context.berth()
  if (/^unit_[0-9a-z]+$/i.test(word)) return await units.get(word, { signal })
  const [name = '', stack] = word.split('/').toReversed()
  const found = await units.find(name, { stack, signal }).catch((error: unknown) => {
    if (error instanceof BerthError && error.code === 'not_found') return null
    throw error
  })
  if (!found) throw new Failure(`There is no unit "${word}".`, { hint: 'berth ls', code: 'not_found' })
  return found
}

export const stackNameOf = (unit: Unit): string => unit.info.internalHost.split('.')[1] ?? unit.info.stackId
