// Shown in place of a page that failed.

import { useQueryErrorResetBoundary } from '@tanstack/react-query'
import { useRouter } from '@tanstack/react-router'
import { isBerthError } from '@berth/sdk'
import { explain } from '../api/explain.ts'
import { Failure } from '../ui/page-parts.tsx'
import { NotHere } from './not-here.tsx'

/** Where the frame of the pages is what failed. */
export function PageErrorAlone(failed: { error: unknown; reset: () => void }) {
  return (
    <main>
      <PageError {...failed} />
    </main>
  )
}

export function PageError({ error, reset }: { error: unknown; reset: () => void }) {
  const { reset: resetQueries } = useQueryErrorResetBoundary()
  const router = useRouter()
  if (isBerthError(error, 'not_found')) return <NotHere />
  const { title, text, requestId } = explain(error)
  const again = () => {
    resetQueries()
    reset()
    void router.invalidate()
  }
  return <Failure title={title} text={text} requestId={requestId} onRetry={again} isPage />
}
