// Popups live in the page's main landmark: outside of one, screen readers skip them.

export function popupRoot(): HTMLElement {
  return document.querySelector('main') ?? document.body
}
