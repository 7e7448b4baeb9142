// Runs before the first paint, so that a dark screen does not flash white. The policy refuses inline scripts.
{
  const theme = localStorage.getItem('berth-theme')
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
}
