import type { ComponentType } from "preact";
import { useRef, useState } from "preact/hooks";
import { Escaped } from "./escaped.tsx";

interface Props {
  readonly count: number;
  readonly lineAt: (index: number) => string;
  readonly label: string;
  /** Shows a line. Default: plain text with visible escapes. */
  readonly Line?: ComponentType<{ readonly text: string }>;
}

/** Maximum height in lines. */
const MAX_LINES = 28;
const LINE_PX = 20;
const OVERSCAN_LINES = 20;

/** Shows long text by rendering only the visible lines. The text can have several megabytes. */
export function VirtualLines({ count, lineAt, label, Line = Escaped }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const shown = Math.min(count, MAX_LINES);
  const first = Math.max(0, Math.floor(top / LINE_PX) - OVERSCAN_LINES);
  const last = Math.min(count, first + shown + 2 * OVERSCAN_LINES);
  const lines = Array.from({ length: last - first }, (_, index) => first + index);
  return (
    <div
      ref={box}
      class="lines"
      role="region"
      aria-label={label}
      tabIndex={0}
      style={{ height: `${shown * LINE_PX + 20}px` }}
      onScroll={() => setTop(box.current?.scrollTop ?? 0)}
    >
      <div class="lines-all" style={{ height: `${count * LINE_PX}px` }}>
        <pre style={{ transform: `translateY(${first * LINE_PX}px)` }}>
          {lines.map((index) => (
            <div key={index} class="line">
              <span class="line-number" aria-hidden="true">
                {index + 1}
              </span>
              <Line text={lineAt(index)} />
              {"\n"}
            </div>
          ))}
        </pre>
      </div>
    </div>
  );
}
