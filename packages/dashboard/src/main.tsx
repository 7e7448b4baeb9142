// The dashboard: a client of the API like any other, with a person's session.

import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { cache } from './api/cache.ts'
import { meQuery } from './api/queries.ts'
import { router } from './routes.tsx'
import { giveWay, takeFirstData } from './start/first-data.ts'
import './tokens.css'
import './base.css'

// A tab from before an upgrade asks for files that are gone: it loads the new page, once. While nothing answers it stays.
addEventListener('vite:preloadError', () => void loadAnew().catch(() => {}))

async function loadAnew(): Promise<void> {
  const last = Number(sessionStorage.getItem('berth-reloaded') ?? 0)
  if (Date.now() - last < 60_000) return
  await fetch(location.href, { method: 'HEAD', cache: 'no-store' })
  sessionStorage.setItem('berth-reloaded', String(Date.now()))
  location.reload()
}

takeFirstData()
// Asked before the first render, which takes a while.
void cache.prefetchQuery(meQuery)

const root = document.getElementById('root')
if (root) giveWay(root)
if (root)
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={cache}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </StrictMode>,
  )
