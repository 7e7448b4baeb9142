// Popups live in the page's main landmark: outside of one, screen readers skip them. Not in that of the first view, which goes.

export function popupRoot(): HTMLElement {
  return document.querySelector<HTMLElement>('#root main') ?? document.body
}
