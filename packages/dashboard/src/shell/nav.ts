// The pages that the sidebar and the palette lead to, in their order. `g` and then the key goes there.

import Box from 'lucide-react/icons/box'
import type { ComponentType, SVGProps } from 'react'

export type NavItem = {
  label: string
  to: '/t/$team/units'
  /** After `g`. */
  key: string
  icon: ComponentType<SVGProps<SVGSVGElement>>
}

export const nav: readonly NavItem[] = [{ label: 'Units', to: '/t/$team/units', key: 'u', icon: Box }]
