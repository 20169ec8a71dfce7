import { useEffect, useState } from "preact/hooks";
import { announce } from "../feedback/announce.tsx";
import { Button } from "../layout/button.tsx";
import { Icon } from "../layout/icons.tsx";
import { visibleText } from "./visible.ts";

interface Props {
  readonly text: string;
  /** Name of the copied text: `address`. */
  readonly what: string;
}

export function CopyButton({ text, what }: Props) {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return undefined;
    const timer = setTimeout(() => setCopied(false), 1_500);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    announce(`Copied: ${what}`);
  };
  return (
    <Button
      look="quiet icon-only"
      aria-label={`Copy ${what}`}
      title={`Copy ${what}`}
      onClick={() => void copy().catch(() => announce("The browser does not allow this page to copy."))}
    >
      <Icon name={isCopied ? "check" : "copy"} />
    </Button>
  );
}

/** Short text with a copy button. Invisible characters are shown as escapes, but the original text is copied. */
export function Copyable({ text, what }: Props) {
  const shown = visibleText(text);
  return (
    <span class="copyable">
      <code class="ellipsis" title={shown}>
        {shown}
      </code>
      <CopyButton text={text} what={what} />
    </span>
  );
}
