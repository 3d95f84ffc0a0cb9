/** Follows the scrolling of the page or of a box, for lists that draw only the rows that can be seen. */
import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";
import { windowOf, type RowWindow } from "../window.ts";

/** @param list the element whose top is the top of the first row. It scrolls by itself, or with the page. */
export function useWindow(
  list: RefObject<HTMLElement | null>,
  count: number,
  rowHeight: number,
  scrollsItself = false,
): RowWindow {
  const [seen, setSeen] = useState({ top: 0, height: 900 });
  useEffect(() => {
    const box = list.current;
    if (box === null) return;
    const look = () => {
      const top = scrollsItself ? box.scrollTop : -box.getBoundingClientRect().top;
      const height = scrollsItself ? box.clientHeight : innerHeight;
      setSeen((now) =>
        Math.abs(now.top - top) < rowHeight * 3 && now.height === height ? now : { top, height },
      );
    };
    look();
    const on: EventTarget = scrollsItself ? box : window;
    on.addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => {
      on.removeEventListener("scroll", look);
      removeEventListener("resize", look);
    };
  }, [list, rowHeight, scrollsItself, count === 0]);
  return windowOf(count, rowHeight, seen.top, seen.height);
}

/** Whether the screen is narrow, as the style sheet means it. */
export function useNarrow(): boolean {
  const [isNarrow, setNarrow] = useState(() => matchMedia(NARROW_SCREEN).matches);
  useEffect(() => {
    const query = matchMedia(NARROW_SCREEN);
    const look = () => setNarrow(query.matches);
    query.addEventListener("change", look);
    return () => query.removeEventListener("change", look);
  }, []);
  return isNarrow;
}

const NARROW_SCREEN = "(max-width: 860px)";
