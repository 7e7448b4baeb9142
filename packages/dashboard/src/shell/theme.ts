// Light, dark, or as the system has it. theme.js sets it before the first paint.

export const themes = ['system', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

const name = 'berth-theme'

export function readTheme(): Theme {
  const kept = localStorage.getItem(name)
  return themes.find((theme) => theme === kept) ?? 'system'
}

export function setTheme(theme: Theme): void {
  const { dataset } = document.documentElement
  if (theme === 'system') {
    localStorage.removeItem(name)
    delete dataset['theme']
  } else {
    localStorage.setItem(name, theme)
    dataset['theme'] = theme
  }
  dispatchEvent(new Event('berth-theme'))
}
