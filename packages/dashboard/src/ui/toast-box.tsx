// The messages at the bottom right. Errors stay until they are closed.

import { Toast } from '@base-ui/react/toast'
import { Link } from '@tanstack/react-router'
import X from 'lucide-react/icons/x'
import { useEffect } from 'react'
import { popupRoot } from './popup-root.ts'
import { useTeam } from '../shell/team-context.ts'
import { showToastsWith, type Toast as Queued } from './toast-queue.ts'
import styles from './toast.module.css'

const manager = Toast.createToastManager()

export function ToastBox() {
  // What was told before this was loaded comes now: its provider listens already.
  useEffect(() => showToastsWith((toast) => void manager.add(toast)), [])
  return (
    <Toast.Provider toastManager={manager}>
      <Toast.Portal container={popupRoot()}>
        <Toast.Viewport className={styles.viewport ?? ''} data-messages>
          <List />
        </Toast.Viewport>
      </Toast.Portal>
    </Toast.Provider>
  )
}

function List() {
  const { toasts, close } = Toast.useToastManager<NonNullable<Queued['data']>>()
  const { slug } = useTeam()
  return toasts.map((toast) => (
    <Toast.Root
      key={toast.id}
      toast={toast}
      swipeDirection={[]}
      className={`${styles.toast} ${toast.type === 'error' ? styles.error : ''}`}
    >
      <div className={styles.words}>
        <Toast.Title className={styles.title ?? ''} render={<div />} />
        <Toast.Description render={<div />} />
        {toast.data && <Way to={toast.data} slug={slug} onFollow={() => close(toast.id)} />}
      </div>
      <Toast.Close className={styles.close ?? ''} aria-label="Close this message">
        <X aria-hidden="true" />
      </Toast.Close>
    </Toast.Root>
  ))
}

/** A link as any other: the parts of a message are hidden from screen readers until it has the focus. */
function Way({
  to,
  slug,
  onFollow,
}: {
  to: NonNullable<Queued['data']>
  slug: string
  onFollow: () => void
}) {
  return 'unit' in to ? (
    <Link to="/t/$team/units/$id" params={{ team: slug, id: to.unit }} onClick={onFollow}>
      {to.text}
    </Link>
  ) : (
    <Link to={`/t/$team${to.to}`} params={{ team: slug }} onClick={onFollow}>
      {to.text}
    </Link>
  )
}
