// xterm.js on a page whose policy allows no `<style>` element: the rules go into style sheets that are made by script.

import { FitAddon } from '@xterm/addon-fit'
import { type ITheme, Terminal } from '@xterm/xterm'
import '@xterm/xterm/css/xterm.css'

export type Screen = { xterm: Terminal; fit: () => void; dispose: () => void }

const SCROLLBACK_LINES = 5000

export function openScreen(place: HTMLElement): Screen {
  const xterm = new Terminal({
    cursorBlink: !matchMedia('(prefers-reduced-motion: reduce)').matches,
    fontFamily: getComputedStyle(document.documentElement).getPropertyValue('--mono'),
    fontSize: 13,
    minimumContrastRatio: 4.5,
    scrollback: SCROLLBACK_LINES,
    screenReaderMode: true,
    theme: themeOf(place),
  })
  const fitting = new FitAddon()
  xterm.loadAddon(fitting)
  withSheets(() => xterm.open(place))
  const paint = () => {
    xterm.options.theme = themeOf(place)
  }
  const dark = matchMedia('(prefers-color-scheme: dark)')
  dark.addEventListener('change', paint)
  addEventListener('berth-theme', paint)
  return {
    xterm,
    // A place that is not laid out yet has no size.
    fit: () => {
      if (place.clientWidth > 0) fitting.fit()
    },
    dispose: () => {
      dark.removeEventListener('change', paint)
      removeEventListener('berth-theme', paint)
      xterm.dispose()
    },
  }
}

/** While `open` runs, a style element is a stand-in that fills a sheet, and takes it along when it goes. */
function withSheets(open: () => void): void {
  const create = document.createElement.bind(document)
  document.createElement = ((name: string, options?: ElementCreationOptions) =>
    name === 'style' ? standIn(create('template')) : create(name, options)) as Document['createElement']
  try {
    open()
  } finally {
    // What is below it is the prototype's own.
    Reflect.deleteProperty(document, 'createElement')
  }
}

function standIn(element: HTMLElement): HTMLElement {
  const sheet = new CSSStyleSheet()
  document.adoptedStyleSheets.push(sheet)
  Object.defineProperty(element, 'textContent', {
    set: (rules: string) => {
      sheet.replaceSync(rules)
    },
  })
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet)
    HTMLElement.prototype.remove.call(element)
  }
  return element
}

/** A canvas knows no variables: the colours of the page as they are now. */
function themeOf(place: HTMLElement): ITheme {
  const probe = document.createElement('span')
  place.append(probe)
  const colour = (name: string) => {
    probe.style.color = `var(--${name})`
    return getComputedStyle(probe).color
  }
  const theme: ITheme = {
    background: colour('surface'),
    foreground: colour('text'),
    cursor: colour('accent'),
    cursorAccent: colour('surface'),
    selectionBackground: colour('line-2'),
    black: colour('text-3'),
    red: colour('danger'),
    green: colour('running'),
    yellow: colour('moving'),
    blue: colour('accent'),
    magenta: colour('sleeping'),
    white: colour('text-2'),
  }
  probe.remove()
  return theme
}
