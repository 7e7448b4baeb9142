// The tabs of a unit are links: each has an address, opens in a new window, and is an entry of the browser's history.

import { Link, useLocation, useNavigate } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import { useKeys } from '../shell/keys.ts'
import { useTeam } from '../shell/team-context.ts'
import { useUnit } from './unit-context.ts'
import styles from './unit.module.css'

/** Only units of this image run code (docs/guides/code.md). */
const CODE_IMAGE = /^berth\.local\/code(?::|$)/

const allTabs = [
  { label: 'Overview', to: '/t/$team/units/$id' },
  { label: 'Code', to: '/t/$team/units/$id/code' },
  { label: 'Terminal', to: '/t/$team/units/$id/terminal' },
  { label: 'Logs', to: '/t/$team/units/$id/logs' },
  { label: 'Files', to: '/t/$team/units/$id/files' },
  { label: 'Network', to: '/t/$team/units/$id/egress' },
  { label: 'Activity', to: '/t/$team/units/$id/activity' },
  { label: 'Settings', to: '/t/$team/units/$id/settings' },
] as const

export function Tabs({ id }: { id: string }) {
  const { slug } = useTeam()
  const { image } = useUnit()
  const tabs = allTabs.filter(({ label }) => label !== 'Code' || CODE_IMAGE.test(image))
  const navigate = useNavigate()
  const params = { team: slug, id }
  useKeys(
    'Tabs',
    tabs.map(({ label, to }, at) => ({
      keys: `${at + 1}`,
      label,
      run: () => void navigate({ to, params }),
    })),
  )
  const bar = useRef<HTMLElement>(null)
  const { pathname } = useLocation()
  // On a phone not all of them fit.
  useEffect(() => {
    bar.current
      ?.querySelector(`[href="${CSS.escape(pathname)}"]`)
      ?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [pathname])
  return (
    <nav ref={bar} aria-label="This unit" className={styles.tabs}>
      {tabs.map(({ label, to }) => (
        <Link
          key={to}
          to={to}
          params={params}
          className={styles.tab}
          activeOptions={{ exact: true, includeSearch: false }}
          activeProps={{ 'aria-current': 'page' }}
        >
          {label}
        </Link>
      ))}
    </nav>
  )
}
