// What is in a menu.

export type MenuItem =
  | { label: string; onSelect: () => void; why?: string | null; hint?: string; isDanger?: boolean }
  | 'line'
