/** A row of small bars: how a count went over the last minutes. */
import type { JSX } from "preact";

const HIGH = 14;
const BAR = 3;

export function Sparkline({
  values,
  about,
}: {
  readonly values: readonly number[];
  readonly about: string;
}): JSX.Element {
  const most = Math.max(1, ...values);
  const width = values.length * (BAR + 1);
  return (
    <svg
      class="spark"
      width={width}
      height={HIGH}
      viewBox={`0 0 ${width} ${HIGH}`}
      role="img"
      aria-label={`${about}: ${values.join(", ")}`}
    >
      {values.map((value, at) => {
        const height = value === 0 ? 1 : Math.max(2, (value / most) * HIGH);
        return <rect key={at} x={at * (BAR + 1)} y={HIGH - height} width={BAR} height={height} />;
      })}
    </svg>
  );
}
