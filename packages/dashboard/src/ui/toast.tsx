// Shows the result of an action as a message. The component is loaded with the first message.

import { lazy, Suspense, useSyncExternalStore } from 'react'
import { addToast, type Toast, areToastsWanted, onToastsWanted } from './toast-queue.ts'

const Box = lazy(async () => ({ default: (await import('./toast-box.tsx')).ToastBox }))

/** One with a link stays long enough to be read and followed. */
export function tell(title: string, link?: Toast['data']): void {
  addToast({ title, timeout: link ? 15_000 : 5000, ...(link && { data: link }) })
}

export function tellError({
  title,
  text,
  requestId,
  link = null,
}: {
  title: string
  text: string
  requestId: string | null
  link?: Toast['data'] | null
}): void {
  const description = requestId === null ? text : `${text} (request ${requestId})`
  addToast({ title, description, type: 'error', timeout: 0, priority: 'high', ...(link && { data: link }) })
}

export function Toasts() {
  const isShown = useSyncExternalStore(onToastsWanted, areToastsWanted)
  return isShown ? (
    <Suspense>
      <Box />
    </Suspense>
  ) : null
}
