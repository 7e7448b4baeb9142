// The palette is loaded when it is opened first.

import { lazy, Suspense } from 'react'
import { usePaletteOpen } from './palette-state.ts'

const Box = lazy(async () => ({ default: (await import('./palette-box.tsx')).PaletteBox }))

export function Palette() {
  return usePaletteOpen() ? (
    <Suspense>
      <Box />
    </Suspense>
  ) : null
}
