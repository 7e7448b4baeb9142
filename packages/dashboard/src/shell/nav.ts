// The pages that the sidebar and the palette lead to, in their order. `g` and then the key goes there.

import Bot from 'lucide-react/icons/bot'
import Box from 'lucide-react/icons/box'
import ChartColumn from 'lucide-react/icons/chart-column'
import CircleQuestionMark from 'lucide-react/icons/circle-question-mark'
import Layers from 'lucide-react/icons/layers'
import LayoutGrid from 'lucide-react/icons/layout-grid'
import ScrollText from 'lucide-react/icons/scroll-text'
import Users from 'lucide-react/icons/users'
import type { ComponentType, SVGProps } from 'react'

export type NavItem = {
  label: string
  to: `/t/$team/${'units' | 'stacks' | 'recipes' | 'agents' | 'spend' | 'audit' | 'team' | 'help'}`
  /** After `g`. */
  key: string
  icon: ComponentType<SVGProps<SVGSVGElement>>
}

export const nav: readonly NavItem[] = [
  { label: 'Units', to: '/t/$team/units', key: 'u', icon: Box },
  { label: 'Stacks', to: '/t/$team/stacks', key: 's', icon: Layers },
  { label: 'Recipes', to: '/t/$team/recipes', key: 'r', icon: LayoutGrid },
  { label: 'Agents', to: '/t/$team/agents', key: 'a', icon: Bot },
  { label: 'Spend', to: '/t/$team/spend', key: 'm', icon: ChartColumn },
  { label: 'Activity', to: '/t/$team/audit', key: 'l', icon: ScrollText },
  { label: 'Team', to: '/t/$team/team', key: 't', icon: Users },
  { label: 'Help', to: '/t/$team/help', key: 'h', icon: CircleQuestionMark },
]
