// A page that is loaded when it is opened. A page whose file cannot be fetched says so in its place and can be tried again: the
// router by itself would load everything again, which without a network leaves the browser's own error page.

import { BerthError } from '@berth/sdk'
import { lazyRouteComponent } from '@tanstack/react-router'

export function lazyPage<T extends Record<string, unknown>, K extends keyof T>(
  load: () => Promise<T>,
  name: K,
) {
  return lazyRouteComponent<T, K>(async () => {
    try {
      return await load()
    } catch (error) {
      throw new BerthError('connection_failed', 'This page could not be loaded.', { cause: error })
    }
  }, name)
}
