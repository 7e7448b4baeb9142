// The file of profiles: URLs and credentials of services. Only its owner can read it, and it is never half written.

import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Failure } from './failure.ts'

export type OauthLogin = { clientId: string; accessToken: string; refreshToken: string; expiresAt: string }
export type Profile = { url: string; key?: string; oauth?: OauthLogin }
export type Config = { current: string; profiles: Record<string, Profile> }

const empty = (): Config => ({ current: 'default', profiles: {} })

/** Null where there is no home to keep it in. */
export function configPath(): string | null {
  const { XDG_CONFIG_HOME, HOME } = process.env
  const base = XDG_CONFIG_HOME || (HOME ? join(HOME, '.config') : null)
  return base === null ? null : join(base, 'berth', 'config.json')
}

export function readConfig(): Config {
  const path = configPath()
  if (path === null) return empty()
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch {
    return empty()
  }
  try {
    const { current, profiles } = JSON.parse(text) as Config
    return { current: String(current), profiles: Object(profiles) as Config['profiles'] }
  } catch {
    throw new Failure(`${path} is no JSON.`, { hint: `rm ${path}, and berth login again` })
  }
}

export function writeConfig(config: Config): void {
  const path = configPath()
  if (path === null)
    throw new Failure('There is no home directory to keep a profile in.', {
      hint: 'set XDG_CONFIG_HOME, or BERTH_URL and BERTH_API_KEY',
    })
  try {
    makeDirectory(dirname(path))
    const draft = `${path}.${process.pid}`
    writeFileSync(draft, `${JSON.stringify(config, null, 2)}\n`, { mode: 0o600 })
    chmodSync(draft, 0o600)
    renameSync(draft, path)
  } catch (error) {
    throw new Failure(`${path} cannot be written: ${(error as Error).message}`, {
      hint: 'set XDG_CONFIG_HOME, or BERTH_URL and BERTH_API_KEY',
    })
  }
}

/** With its parents. Node's own recursive way never returns where the file system makes no directories, as in /proc. */
function makeDirectory(path: string): void {
  if (existsSync(path)) return
  makeDirectory(dirname(path))
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    // Another process may have made it meanwhile.
    if (!existsSync(path)) throw error
  }
}

/** Another process may have written meanwhile: it is read again. */
export function changeConfig(change: (config: Config) => void): void {
  const config = readConfig()
  change(config)
  writeConfig(config)
}
