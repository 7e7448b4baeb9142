// The page for what does not exist. What belongs to another team looks the same.

import { Empty } from '../ui/page-parts.tsx'

export function NotHere() {
  return (
    <Empty title="There is nothing here">
      <p>It does not exist, or it belongs to a team that you are not in.</p>
      <a href="/">To your units</a>
    </Empty>
  )
}
