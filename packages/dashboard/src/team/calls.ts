// Calls that change a team. Each shows its result in a message, which stays if the call failed.

import { berthOf } from '../api/client.ts'
import { cache, keys } from '../api/cache.ts'
import { explain } from '../api/explain.ts'
import { tell, tellError } from '../ui/toast.tsx'

export type TeamCall = {
  method: 'POST' | 'PATCH' | 'DELETE'
  /** Below the team. */
  path: string
  body?: unknown
}

/** Returns the response; null if the call failed, of which the page has a message then. */
export async function callTeam<T>(
  team: string,
  { method, path, body }: TeamCall,
  done: string,
): Promise<T | null> {
  try {
    const target = `/v1/teams/${encodeURIComponent(team)}${path}`
    const answer = await berthOf(team).request<T>(method, target, body === undefined ? {} : { body })
    tell(done)
    void cache.invalidateQueries({ queryKey: keys.members(team) })
    void cache.invalidateQueries({ queryKey: keys.me })
    return answer
  } catch (error) {
    tellError(explain(error))
    return null
  }
}
