/** The ways in which events arrive. */
export const WAYS = {
  webhook: { title: "Webhook", text: "The sender calls an address of Inlet." },
  poll: { title: "Poll", text: "Inlet asks an API for new items at an interval." },
  stream: { title: "Stream", text: "Inlet reads a stream of server-sent events." },
} as const;
export type Way = keyof typeof WAYS;

export const isWay = (text: string | undefined): text is Way =>
  text !== undefined && Object.hasOwn(WAYS, text);

interface Props {
  /** Ways that the sender offers. */
  readonly offered: readonly Way[];
  readonly chosen: Way;
  readonly onChoose: (way: Way) => void;
}

/** Choice of a way, side by side. */
export const WayChoice = ({ offered, chosen, onChoose }: Props) => (
  <fieldset class="ways" aria-label="Way">
    {offered.map((way) => (
      <label key={way} class="way">
        <span class="row">
          <input type="radio" name="way" checked={way === chosen} onChange={() => onChoose(way)} />
          <strong>{WAYS[way].title}</strong>
        </span>
        <span class="soft">{WAYS[way].text}</span>
      </label>
    ))}
  </fieldset>
);
