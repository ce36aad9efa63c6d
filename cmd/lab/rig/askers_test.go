package rig

import (
	"errors"
	"testing"
)

func TestEachCountsWhatWentWell(t *testing.T) {
	t.Parallel()
	c := &Askers{}
	n, err := c.runWorkers(3, func(worker, i int) (bool, error) { return i < worker, nil })
	if n != 0+1+2 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	broken := errors.New("broken")
	n, err = c.runWorkers(2, func(worker, i int) (bool, error) {
		if worker == 1 && i == 4 {
			return true, broken
		}
		return i < 6, nil
	})
	if n != 6+4 || !errors.Is(err, broken) {
		t.Errorf("got %d, %v", n, err)
	}
}
