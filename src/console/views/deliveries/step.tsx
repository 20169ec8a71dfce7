import type { ComponentChildren } from "preact";
import type { Tone } from "../../kit/layout/page.tsx";

interface StepProps {
  readonly title: string;
  readonly tone: Tone;
  /** Time since the arrival of the delivery. */
  readonly after?: string | undefined;
  readonly children: ComponentChildren;
}

export const Step = ({ title, tone, after, children }: StepProps) => (
  <li class={`step ${tone}`}>
    <h2>
      {title} <span class="sr-only">{HEARD[tone]}</span>
      {after !== undefined && <span class="step-after">{after}</span>}
    </h2>
    <div class="step-body">{children}</div>
  </li>
);

const HEARD: Readonly<Record<Tone, string>> = {
  ok: "(done)",
  bad: "(failed)",
  warn: "(needs attention)",
  info: "(in progress)",
  plain: "",
};
