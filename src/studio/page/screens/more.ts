/** The screens that are not needed to see runs and to answer: one file of the built page, loaded when one of them is opened. */
export { CompareScreen } from "./compare.tsx";
export { FiguresScreen } from "./figures.tsx";
export { FlowScreen } from "./flow.tsx";
export { ForkScreen } from "./fork.tsx";
export { StartScreen } from "./start.tsx";
export { WhatIfScreen } from "./whatif.tsx";
