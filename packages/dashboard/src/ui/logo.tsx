// The mark of Berth: a ship between its piers.

export function Logo() {
  return (
    <svg
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth="2"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d="M4 20V4h16v16" />
      <path d="M9 8h6v7q0 3-3 5-3-2-3-5Z" />
    </svg>
  )
}
