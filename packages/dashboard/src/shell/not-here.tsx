// The page for what does not exist. What belongs to another team looks the same.

import { Empty } from '../ui/page-parts.tsx'

/** Where there is no frame around it. */
export function NotHereAlone() {
  return (
    <main>
      <NotHere />
    </main>
  )
}

export function NotHere() {
  return (
    <Empty title="There is nothing here" isPage>
      <p>It does not exist, or it belongs to a team that you are not in.</p>
      <a href="/">To your units</a>
    </Empty>
  )
}
