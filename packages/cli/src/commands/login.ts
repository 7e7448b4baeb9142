// `berth login`, `logout` and `profiles`.

import { Berth } from '@berth/sdk'
import { UsageError } from '../args.ts'
import { changeConfig, type Profile, readConfig, writeConfig } from '../config.ts'
import { type Context, noProfile, version } from '../context.ts'
import { Failure } from '../failure.ts'
import { readInput } from '../input.ts'
import { note, print, printJson, printTable } from '../output.ts'

export async function login(context: Context): Promise<void> {
  const { args } = context
  const before = readConfig()
  const given = args.args[0] ?? args.text('url')
  const name = args.text('name') ?? args.text('profile') ?? (given === undefined ? before.current : 'default')
  const url = (given ?? process.env.BERTH_URL ?? before.profiles[name]?.url)?.replace(/\/+$/, '')
  if (url === undefined) throw new UsageError('Say where to sign in: berth login https://YOUR-BERTH')
  if (!/^https?:\/\/[^/]/.test(url))
    throw new UsageError(`"${url}" is not a URL: write it with http:// or https://`)
  // Before anybody is asked: it is to be kept somewhere.
  writeConfig(before)
  const profile = args.flag('key') ? { url, key: await readKey() } : await byBrowser(context, url)
  const { units } = await new Berth({
    url,
    apiKey: profile.key ?? profile.oauth?.accessToken ?? '',
    userAgent: `berth-cli/${version}`,
  }).quota({ signal: context.signal })
  changeConfig((config) => {
    config.profiles[name] = profile
    config.current = name
  })
  if (context.isJson) await printJson({ profile: name, url })
  else note(`Signed in at ${url} as profile "${name}": ${units.live} of ${units.max} units run.`)
}

async function byBrowser(context: Context, url: string): Promise<Profile> {
  const { signIn } = await import('../oauth.ts')
  return {
    url,
    oauth: await signIn(url, { signal: context.signal, opens: !context.args.flag('no-browser') }),
  }
}

/** A key is no argument: those are seen by everybody on the machine. */
async function readKey(): Promise<string> {
  if (process.stdin.isTTY) note('Paste the API key, then Enter and Ctrl-D:')
  const key = (await readInput(10_000)).toString('utf8').trim()
  if (!/^[\x21-\x7e]{1,500}$/.test(key))
    throw new Failure('Standard input has no API key.', { hint: 'berth login --key < key.txt' })
  return key
}

export async function logout(context: Context): Promise<void> {
  const config = readConfig()
  const name = context.args.text('profile') ?? config.current
  const profile = config.profiles[name]
  if (!profile) throw noProfile(name)
  if (profile.oauth) {
    const { revoke } = await import('../oauth.ts')
    // A service that is gone must not keep it here.
    await revoke(profile.url, profile.oauth).catch((error: Error) =>
      note(`Its tokens could not be given back: ${error.message}`),
    )
  }
  changeConfig((kept) => {
    delete kept.profiles[name]
    if (kept.current === name) kept.current = Object.keys(kept.profiles)[0] ?? 'default'
  })
  if (context.isJson) await printJson({ profile: name })
}

export async function profiles(context: Context): Promise<void> {
  const config = readConfig()
  const [name] = context.args.args
  if (name !== undefined) {
    if (!config.profiles[name]) throw noProfile(name, `berth login --name ${name}`)
    changeConfig((kept) => void (kept.current = name))
    return context.isJson ? await printJson({ current: name }) : await print(name)
  }
  const rows = Object.entries(config.profiles).map(([each, { url, oauth }]) => ({
    name: each,
    url,
    by: oauth ? 'browser' : 'key',
    isCurrent: each === config.current,
  }))
  if (context.isJson) return await printJson(rows)
  await printTable(
    ['NAME', 'URL', 'BY', 'USED'],
    rows.map(({ name: each, url, by, isCurrent }) => [each, url, by, isCurrent ? 'yes' : '']),
  )
}
