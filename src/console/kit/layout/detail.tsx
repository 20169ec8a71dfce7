import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { visibleText } from "../text/visible.ts";
import { Button } from "./button.tsx";
import { Icon } from "./icons.tsx";

interface Props {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** Panel next to a list, with the details of one row. It takes the focus when it opens, and Escape closes it. */
export function DetailPanel({ title, onClose, children }: Props) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    heading.current?.focus();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key === "Escape" && !document.querySelector("dialog[open]")) onClose();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [onClose]);
  return (
    <aside class="detail" aria-label={visibleText(title)}>
      <header class="detail-head">
        <h2 ref={heading} tabIndex={-1}>
          {visibleText(title)}
        </h2>
        <span class="grow" />
        <Button look="quiet icon-only" aria-label="Close the details" onClick={onClose}>
          <Icon name="close" />
        </Button>
      </header>
      <div class="detail-body">{children}</div>
    </aside>
  );
}
