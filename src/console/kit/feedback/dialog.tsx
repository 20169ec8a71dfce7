import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { Button } from "../layout/button.tsx";
import { Icon } from "../layout/icons.tsx";
import { visibleText } from "../text/visible.ts";

interface Props {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  readonly wide?: boolean;
}

/**
 * Modal dialog. The element with the `autofocus` attribute has the focus as soon as the dialog is open, so that no key press is lost. Escape
 * closes the dialog and returns the focus to the previously focused element.
 */
export function Dialog({ title, onClose, children, wide = false }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  // A layout effect runs before the browser handles the next key press.
  useLayoutEffect(() => {
    const before = document.activeElement;
    const { current } = dialog;
    current?.showModal();
    return () => {
      current?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class={wide ? "dialog wide" : "dialog"}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <header class="dialog-head">
        <h2 id={titleId}>{visibleText(title)}</h2>
        <Button look="quiet icon-only" aria-label="Close" onClick={onClose}>
          <Icon name="close" />
        </Button>
      </header>
      <div class="dialog-body">{children}</div>
    </dialog>
  );
}
