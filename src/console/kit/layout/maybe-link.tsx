import type { ComponentChildren } from "preact";
import { toShown } from "../text/untrusted-text.tsx";

interface Props {
  /** `undefined` renders plain text. */
  readonly href: string | undefined;
  readonly class?: string;
  /** A text is shown as untrusted text. */
  readonly children: ComponentChildren;
}

export const MaybeLink = ({ href, class: name, children }: Props) =>
  href === undefined ? (
    <span class={name}>{toShown(children)}</span>
  ) : (
    <a href={href} class={name}>
      {toShown(children)}
    </a>
  );
