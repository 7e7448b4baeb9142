// `?` says what the keys of this page are. The dialog is loaded when it is asked for.

import { lazy, Suspense, useState } from 'react'
import { useKeys } from './keys.ts'

const Box = lazy(async () => ({ default: (await import('./key-help-box.tsx')).KeyHelpBox }))

export function KeyHelp() {
  const [isOpen, setOpen] = useState(false)
  useKeys('Everywhere', [{ keys: '?', label: 'Keys of this page', run: () => setOpen(true) }])
  return isOpen ? (
    <Suspense>
      <Box onClose={() => setOpen(false)} />
    </Suspense>
  ) : null
}
