// The messages at the bottom right. Errors stay until they are closed.

import { Toast } from '@base-ui/react/toast'
import X from 'lucide-react/icons/x'
import { useEffect } from 'react'
import { popupRoot } from './popup-root.ts'
import { showToastsWith } from './toast-queue.ts'
import styles from './toast.module.css'

const manager = Toast.createToastManager()

export function ToastBox() {
  // What was told before this was loaded comes now: its provider listens already.
  useEffect(() => showToastsWith((toast) => void manager.add(toast)), [])
  return (
    <Toast.Provider toastManager={manager}>
      <Toast.Portal container={popupRoot()}>
        <Toast.Viewport className={styles.viewport ?? ''}>
          <List />
        </Toast.Viewport>
      </Toast.Portal>
    </Toast.Provider>
  )
}

function List() {
  const { toasts } = Toast.useToastManager()
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
      </div>
      <Toast.Close className={styles.close ?? ''} aria-label="Close this message">
        <X aria-hidden="true" />
      </Toast.Close>
    </Toast.Root>
  ))
}
