// Where a command of a client begins.

import { resolvePath } from './users.ts'

/** As the images of a sandbox have them: to ask for one is a call of its own. */
const usualHomes: Record<string, string> = { root: '/root', user: '/home/user' }

/**
 * The directories to try, until one can be entered. A command that names none begins at home; a home that is not there is no reason
 * to refuse it. What is not absolute lies at home.
 */
export async function* directoriesOf(
  cwd: string,
  user: string,
  homeOf: () => Promise<string>,
): AsyncGenerator<string> {
  if (cwd.startsWith('/')) return yield cwd
  if (cwd !== '') return yield resolvePath(cwd, { name: user, home: await homeOf() })
  const usual = usualHomes[user]
  if (usual !== undefined) yield usual
  const home = await homeOf()
  if (home !== usual) yield home
  yield '/'
}
