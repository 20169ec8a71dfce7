import type { ComponentChildren } from "preact";
import { Escaped } from "./escaped.tsx";
import { visibleText } from "./visible.ts";

interface Props {
  readonly children: string | number | null | undefined;
  /** Maximum number of characters to show. A note replaces the rest. */
  readonly max?: number;
}

/** Shows untrusted text without rendering markup, such as an id, a header or a body. Invisible characters are shown as escapes. */
export function UntrustedText({ children, max = 2_000 }: Props) {
  if (children === null || children === undefined || children === "") return <span class="faint">–</span>;
  const whole = String(children);
  const text = whole.length > max ? whole.slice(0, max) : whole;
  return (
    <bdi class="untrusted-text" title={whole.length > 24 ? visibleText(text.slice(0, 500)) : undefined}>
      <Escaped text={text} />
      {whole.length > max && (
        <span class="faint"> … {(whole.length - max).toLocaleString()} more characters</span>
      )}
    </bdi>
  );
}

/** `UntrustedText` in the font of code. */
export const UntrustedCode = ({ class: name, ...text }: Props & { readonly class?: string }) => (
  <code class={name}>
    <UntrustedText {...text} />
  </code>
);

/** Shows a text, or a missing one, as untrusted text. Returns other content unchanged. */
export const toShown = (content: ComponentChildren): ComponentChildren =>
  typeof content === "string" || content === null || content === undefined ? (
    <UntrustedText>{content}</UntrustedText>
  ) : (
    content
  );
