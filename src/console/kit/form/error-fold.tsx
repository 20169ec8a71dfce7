import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface Props {
  readonly class: string;
  readonly summary: ComponentChildren;
  readonly hasError: boolean;
  /** Whether it is open at first. */
  readonly isOpen?: boolean;
  readonly children: ComponentChildren;
}

/**
 * Part of a form that the user can open and close. It opens when it gets an error. It does not close when the error is fixed, because the
 * user may still be typing in it.
 */
export function ErrorFold({ class: className, summary, hasError, isOpen = false, children }: Props) {
  const element = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    if (element.current && (hasError || isOpen)) element.current.open = true;
  }, [hasError]);
  return (
    <details ref={element} class={className}>
      <summary>{summary}</summary>
      {children}
    </details>
  );
}
