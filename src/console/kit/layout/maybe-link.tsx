import type { ComponentChildren } from "preact";

interface Props {
  /** `undefined` renders plain text. */
  readonly href: string | undefined;
  readonly class?: string;
  readonly children: ComponentChildren;
}

export const MaybeLink = ({ href, class: name, children }: Props) =>
  href === undefined ? (
    <span class={name}>{children}</span>
  ) : (
    <a href={href} class={name}>
      {children}
    </a>
  );
