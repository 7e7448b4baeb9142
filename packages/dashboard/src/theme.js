// Runs before the first paint, in the page itself: the policy allows it by its digest.
{
  // So that a dark screen does not flash white.
  const theme = localStorage.getItem('berth-theme')
  const { dataset } = document.documentElement
  if (theme === 'light' || theme === 'dark') dataset.theme = theme
  // The first view is of the team that the server knows as the last one, and this browser may go on elsewhere.
  const team = localStorage.getItem('berth-team')
  const isElsewhere = localStorage.getItem('berth-place') !== null || (team !== null && team !== dataset.team)
  if (location.pathname === '/t' && isElsewhere) dataset.elsewhere = ''
}
